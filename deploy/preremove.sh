#!/bin/sh
# Stops the service when the package is removed, not when it is upgraded: "1" and
# "upgrade" are what rpm and dpkg say then.
case "$1" in 1 | upgrade) exit 0 ;; esac
if [ -d /run/systemd/system ]; then
	systemctl disable --now coppice.service || true
fi
