/* empty on purpose: tools/helpergen.c reads our own text only */
