cd $folder || exit 1
runs() { tr '\0' ' ' 2>/dev/null <"/proc/$$pid/cmdline" | grep -q -- '--name $node *$$'; }
pid=$$(cat node.pid 2>/dev/null)
if [ -z "$$pid" ] || ! runs; then echo "$node does not run"; exit 0; fi
kill -$signal "$$pid"
tries=0
while runs && [ $$tries -lt $tries ]; do sleep 0.2; tries=$$((tries + 1)); done
if runs; then echo "$node $unfinished"; exit $code; fi
rm -f node.pid
echo "$node has left"
