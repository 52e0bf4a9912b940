umask 077; mkdir -p $folder && cd $folder || exit 1
runs() { tr '\0' ' ' 2>/dev/null <"/proc/$$1/cmdline" | grep -q -- '--name $node *$$'; }
if [ -f node.pid ] && runs "$$(cat node.pid)"; then
    echo "$node runs already"; exit 0
fi
setsid nohup $script --file $file --name $node >>node.out 2>&1 </dev/null &
pid=$$!
echo $$pid >node.pid
# Until it is the node, another start would not know it.
until runs $$pid; do
    kill -0 $$pid 2>/dev/null || break
    sleep 0.1
done
echo "$node started; its output is in $folder/node.out"
