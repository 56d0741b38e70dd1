#!/bin/sh
# Write C source in which each file is a string named after it, with _ for characters other than letters and digits.
set -e

for file in "$@"; do
        name=$(basename "$file" | sed 's/[^A-Za-z0-9]/_/g')
        printf 'extern const char %s[];\nconst char %s[] =\n' "$name" "$name"
        sed -e 's/[\\"]/\\&/g' -e 's/^.*$/"&\\n"/' "$file"
        echo ';'
done
