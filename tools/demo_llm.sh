#!/usr/bin/env bash
# demo_llm.sh: talk to SmolLM2; without a terminal, ask it something. tools/models.py has run before.
set -u
cd "$(dirname "$0")/.." || exit 3
model=build/models/smollm2
if [ -t 0 ] && [ -t 1 ]; then
    exec build/bin/oi-chat --model $model
fi
for question in "What is a prime number?" "Name the days of the week."; do
    echo "> $question"
    build/bin/oi-chat --model $model --greedy --count 60 --prompt "$question" || exit
done
