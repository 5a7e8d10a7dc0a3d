VLLM_PP_LAYER_PARTITION=23,23,18 python -m culpa_lab serve -pp 3 --fault incident --port 25609 --host 127.0.0.1 --enable-prompt-tokens-details --kernel-log /runs/incident/scratch/kernel.log
