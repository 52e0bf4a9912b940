"""`millrace plan`: what a configuration needs of GPUs, hosts, disks and the network, before anything is started."""
