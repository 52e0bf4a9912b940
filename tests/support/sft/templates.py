"""Chat templates written after the rules of published ones, so far as they differ in what becomes of earlier answers."""

_HEAD = """\
{%- macro shown(content) -%}
{%- if content is string -%}{{ content }}{%- else -%}
{%- for part in content -%}
{%- if part.type == 'image' -%}<|vision_start|><|image_pad|><|vision_end|>{%- else -%}{{ part.text }}{%- endif -%}
{%- endfor -%}{%- endif -%}
{%- endmacro -%}
{%- set found = namespace(query=-1) -%}
{%- for message in messages if message.role == 'user' -%}{%- set found.query = messages.index(message) -%}{%- endfor -%}
{%- for message in messages -%}
{%- if message.role == 'system' -%}
<|im_start|>system
{{ shown(message.content) }}<|im_end|>
{% elif message.role == 'user' -%}
<|im_start|>user
{{ shown(message.content) }}<|im_end|>
{% elif message.role == 'tool' -%}
{%- if loop.first or loop.previtem.role != 'tool' -%}
<|im_start|>user{% endif %}

<tool_response>
{{ shown(message.content) }}
</tool_response>
{%- if loop.last or loop.nextitem.role != 'tool' -%}
<|im_end|>
{% endif -%}
{%- else -%}
{%- set thought, said = '', shown(message.content) | trim -%}
{%- if '</think>' in said -%}
{%- set thought = said.split('</think>')[0].split('<think>')[-1] | trim -%}
{%- set said = said.split('</think>')[-1].lstrip('\\n') -%}
{%- endif -%}
<|im_start|>assistant
"""
_TAIL = """\
<|im_end|>
{% endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
<|im_start|>assistant
<think>
{% endif -%}
"""

QWEN35 = f"""{_HEAD}\
{{% if loop.index0 > found.query %}}<think>
{{{{ thought }}}}
</think>

{{% endif %}}{{{{ said }}}}
{{%- for call in message.tool_calls or [] -%}}
{{% if not loop.first %}}
{{% elif said %}}

{{% endif %}}<tool_call>
<function={{{{ call.function.name }}}}>
{{% for name, value in call.function.arguments | items %}}<parameter={{{{ name }}}}>
{{{{ value if value is string else value | tojson }}}}
</parameter>
{{% endfor %}}</function>
</tool_call>
{{%- endfor -%}}
{_TAIL}"""
"""As Qwen3.5: each answer behind the last user's message has a thought, an empty one where it had none."""

QWEN3_VL_THINKING = f"""{_HEAD}\
{{% if loop.index0 > found.query and (loop.last or thought) %}}<think>
{{{{ thought }}}}
</think>

{{% endif %}}{{{{ said }}}}
{{%- for call in message.tool_calls or [] -%}}
{{% if not loop.first or said %}}
{{% endif %}}<tool_call>
{{"name": "{{{{ call.function.name }}}}", "arguments": {{{{ call.function.arguments | tojson }}}}}}
</tool_call>
{{%- endfor -%}}
{_TAIL}"""
"""As Qwen3-VL-Thinking: there a thought stands where one was had, and in the last answer always."""
