"""Starting the roles of several nodes: the node file, what runs on one node, and the files for those who start nodes."""
