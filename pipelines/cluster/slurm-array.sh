#!/usr/bin/env bash
# Classifies photographs on a Slurm cluster: one task of an array for each of 16 shards.
#
# From the folder that holds `pipelines/`, with `flowgpu` on the PATH of the compute nodes:
#
#     sbatch pipelines/cluster/slurm-array.sh pipelines/quickstart.yaml
#
# and when all are done, or by itself with `--dependency=afterok:JOB_ID`:
#
#     sbatch --wrap 'flowgpu merge pipelines/quickstart.yaml --shards 16'
#
# Shards are numbered from 0 on: the array is 0-15, not 1-16, and SHARDS below is the same number. A task that is
# requeued, by Slurm or by its time limit, goes on where it was stopped; one that is done does nothing. To run single
# shards again, submit with `--array=3,7`: SHARDS stays 16.

#SBATCH --job-name=flowgpu
#SBATCH --array=0-15
#SBATCH --cpus-per-task=8
#SBATCH --mem=16G
# One GPU for each task; leave it out to compute on the CPU.
#SBATCH --gpus-per-task=1
#SBATCH --time=04:00:00
# Two minutes before the time is up flowgpu is told to stop: what is in flight is finished and kept.
#SBATCH --signal=B:TERM@120
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=flowgpu-%A_%a.log

set -euo pipefail

SHARDS=16
pipeline=${1:?usage: sbatch slurm-array.sh PIPELINE.yaml [OPTIONS OF flowgpu run]}
shift

# `--shard auto` reads SLURM_ARRAY_TASK_ID.
flowgpu run "$pipeline" --shards "$SHARDS" --shard auto "$@" &
child=$!

# The batch shell gets the signals, and passes them on. One of them ends the waiting, but not the program: then it is
# waited for again, until nothing is left to wait for (127).
told=
trap 'told=1; kill -TERM "$child" 2>/dev/null || true' TERM INT
code=0
wait "$child" || code=$?
while [ -n "$told" ]; do
    told=
    again=0
    wait "$child" || again=$?
    [ "$again" -eq 127 ] || code=$again
done

case $code in
    # Rows that were rejected are in the reject file, and `flowgpu merge` says so in the end.
    3) exit 0 ;;
    # Stopped, and resumable.
    130) scontrol requeue "${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}" ;;
esac
exit "$code"
