#!/bin/bash
# a drive in a virtual machine
read_ns=30000
size=192   # in MB
OPTIONS="-device femu"
OPTIONS=${OPTIONS}",devsz_mb=${size},femu_mode=1"
OPTIONS=${OPTIONS}",blks_per_pl=64,luns_per_ch=2,nchs=2,pg_rd_lat=${read_ns}"
qemu-system-x86_64 -m 4G ${OPTIONS} -nographic
