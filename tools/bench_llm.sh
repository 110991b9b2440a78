#!/usr/bin/env bash
# bench_llm.sh: how fast the simulator reads and says tokens with SmolLM2; best of three. Exit 1 below 40 and 20 a second.
set -u
cd "$(dirname "$0")/.." || exit 3
model=build/models/smollm2
if [ ! -e $model/model.oinf ]; then
    echo "SmolLM2: left out, there is no $model (make models)"
    exit 0
fi
command=(build/bin/oi-chat --model $model --greedy --ignore-end --count 64 --threads 2 --print-tokens
    --prompt "Give me three tips for learning a language.")
echo "SmolLM2-135M in the simulator: ${command[*]@Q}"
for _ in 1 2 3; do
    "${command[@]}" 2>&1 > /dev/null
done | awk '{
    print "  " $0
    for (i = 2; i <= NF; i++) if ($i ~ /^tokens\/s/) { if (!seen[NR]++) read = $(i-1) + 0; else said = $(i-1) + 0 }
    if (read > best_read) best_read = read
    if (said > best_said) best_said = said
} END {
    printf "best: read %.1f tokens/s (promised 40), said %.1f tokens/s (promised 20)\n", best_read, best_said
    exit !(best_read >= 40 && best_said >= 20)
}'
