"""Calls that type checkers accept or refuse; `make types` checks this file, and nothing runs it.

Each line that is marked is wrong on purpose. If a keyword lost its type, its mark would be an error: mypy
reports marks without an effect.
"""

import pathlib

import penstock as ps

pets = ps.convert("pets.csv", pathlib.Path("pets"), target="adopted", comment="#", num_threads=2)
ps.convert("pets.csv", "pets", comment=3)  # type: ignore[arg-type]
ps.convert("pets.csv", "pets", coment="#")  # type: ignore[call-arg]
ps.convert("pets.csv", "pets", header="frist")  # type: ignore[arg-type]
ps.open("pets", on_error="ignore")  # type: ignore[arg-type]

pets["train"].loader(batch_size=64, shuffle="block", part=(0, 0.9))
pets["train"].loader(None, batch_size="64")  # type: ignore[call-overload]

run: ps.Run = ps.train(pets, out="runs/pets", epochs=5, parts=["table"], patience=None, num_workers=2)
ps.train(pets, final_rate="low")  # type: ignore[arg-type]
ps.train(pets, folds=5)  # type: ignore[call-arg]
ps.cross_validate(pets, folds=5, epochs=2)
ps.cross_validate(pets, num_workers=2)  # type: ignore[call-arg]

ps.evaluate(run, bootstrap=100, max_skipped=5)
ps.predict(run, "new.csv", keep=["name"])
ps.export_model(run, "served", format="onnx")
ps.export_model(run, "served", format="onx")  # type: ignore[arg-type]

ps.options.ReadOptions(max_skipped=10, strict=True)
ps.options.ReadOptions(strict="yes")  # type: ignore[arg-type]
ps.options.TrainOptions(epochs=3).epochs = 4  # type: ignore[misc]
