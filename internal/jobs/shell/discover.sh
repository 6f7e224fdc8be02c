# What this machine offers to a job, one "name value" a line. A value that can't be found out has no line.
# $1 is the directory whose disk is looked at.
echo "host $(uname -n)"
echo "os $(uname -s)"
echo "arch $(uname -m)"
cpus=$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN 2>/dev/null) && echo "cpus $cpus"
if [ -r /proc/meminfo ]; then
	awk '/^MemTotal:/ { printf "memory_total_mb %d\n", $2 / 1024 } /^MemAvailable:/ { printf "memory_free_mb %d\n", $2 / 1024 }' /proc/meminfo
fi
at=$1
while [ ! -e "$at" ] && [ "$at" != / ] && [ "$at" != . ]; do at=$(dirname "$at"); done
df -Pk "$at" 2>/dev/null | awk 'NR == 2 { printf "disk_free_mb %d\n", $4 / 1024 }'
if command -v nvidia-smi >/dev/null 2>&1; then
	# It hangs where the driver does.
	if command -v timeout >/dev/null 2>&1; then set -- timeout 5 nvidia-smi; else set -- nvidia-smi; fi
	"$@" --query-gpu=index,name,memory.total,memory.free,driver_version --format=csv,noheader,nounits 2>/dev/null | sed 's/^/gpu /'
fi
for name in python3 python; do
	path=$(command -v "$name" 2>/dev/null) || continue
	said=$("$path" -c 'import sys; print(sys.version.split()[0], sys.prefix)' 2>/dev/null </dev/null) || continue
	echo "python $path $said"
	break
done
exit 0
