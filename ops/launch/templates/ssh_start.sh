umask 077; mkdir -p $folder && cd $folder || exit 1
if [ -f node.pid ] && tr '\0' ' ' <"/proc/$$(cat node.pid)/cmdline" 2>/dev/null | grep -q -- '--name $node *$$'; then
    echo "$node runs already"; exit 0
fi
setsid nohup $script --file $file --name $node >>node.out 2>&1 </dev/null &
pid=$$!
echo $$pid >node.pid
# Until it is the node, another start would not know it.
until tr '\0' ' ' <"/proc/$$pid/cmdline" 2>/dev/null | grep -q -- '--name $node *$$'; do
    kill -0 $$pid 2>/dev/null || break
    sleep 0.1
done
echo "$node started; its output is in $folder/node.out"
