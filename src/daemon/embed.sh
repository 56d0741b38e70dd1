#!/bin/sh
# Writes C source that holds texts: for each file, a string named as the file, with _ for what is no letter or digit.
set -e

for file in "$@"; do
        name=$(basename "$file" | sed 's/[^A-Za-z0-9]/_/g')
        printf 'extern const char %s[];\nconst char %s[] =\n' "$name" "$name"
        sed -e 's/[\\"]/\\&/g' -e 's/^.*$/"&\\n"/' "$file"
        echo ';'
done
