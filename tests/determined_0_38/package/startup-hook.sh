#!/bin/sh
export RATES_HOOK=1
