#ifndef MODEL_TRACE_H
#define MODEL_TRACE_H

/*
 * W3C Trace Context: what a sender's traceparent and tracestate must look like to be passed on. A traceparent of a later
 * version than 00 passes when its first four fields are well formed (section 3.2.4).
 */
int trace_parent_is_valid(const char *value);

/* 1 to 512 bytes of printable ASCII; what the list members mean is not judged. */
int trace_state_is_valid(const char *value);

#endif
