#!/bin/sh
# Write C source with the text of each file as a string named after the file; other characters than letters and digits become _.
set -e

for file in "$@"; do
        name=$(basename "$file" | sed 's/[^A-Za-z0-9]/_/g')
        printf 'extern const char %s[];\nconst char %s[] =\n' "$name" "$name"
        sed -e 's/[\\"]/\\&/g' -e 's/^.*$/"&\\n"/' "$file"
        echo ';'
done
