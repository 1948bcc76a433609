"""Pure core: what `odradek plugins new` writes: whole projects of plugins, as texts.

| module | what it holds |
| --- | --- |
| `project` | the files that every project has, and all of them together |
| `assignor`, `cleanup`, `stage`, `storage` | the code and the tests of one kind |

Texts are code as it stands, of a plugin named `my_plugin` (`my-plugin` as a distribution, `MyPlugin` in names of
classes); who asks gets another name in the place of it. Tests write, check and run what comes out.
"""
