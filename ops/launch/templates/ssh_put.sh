umask 077; mkdir -p $folder && cat >$path.partial && mv $path.partial $path
