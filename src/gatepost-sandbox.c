#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include <curl/curl.h>

#include "base/log.h"
#include "base/process.h"
#include "sandbox/fire.h"
#include "sandbox/serve.h"

int
main(int argc, char **argv)
{
        int status;

        process_open_standard_files();
        log_init();
        (void)curl_global_init(CURL_GLOBAL_DEFAULT);
        if (argc > 1 && strcmp(argv[1], "fire") == 0)
                status = fire_main(argc - 1, argv + 1);
        else
                status = serve_main(argc, argv);
        curl_global_cleanup();
        if (fflush(stdout) != 0 || ferror(stdout)) {
                fprintf(stderr, "gatepost-sandbox: cannot write to standard output\n");
                return EX_IOERR;
        }
        return status;
}
