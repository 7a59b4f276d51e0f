"""Statements and the sentence that a merge would make of them, in several languages."""

from __future__ import annotations

RIGHT: list[tuple[list[str], str]] = [
    # English
    (["Mara has three hens.", "Mara's 3 hens lay brown eggs."], "Mara has 3 hens, which lay brown eggs."),
    (["Mara buys a dozen eggs.", "Mara buys 12 eggs on Mondays."], "Mara buys 12 eggs on Mondays."),
    (["The user can't eat celery.", "Mara must not eat celery."], "Mara must not eat celery."),
    (["Mara is a non-swimmer.", "Mara cannot swim."], "Mara cannot swim."),
    (["The user keeps bees.", "Mara keeps bees on the roof."], "Mara keeps bees on the roof."),
    (["Mara owns a red canoe.", "Mara's canoe is red and five metres long."], "Mara owns a red canoe of 5 metres."),
    (["Mara teaches at Fairhill.", "Mara teaches Latin."], "Mara teaches Latin at Fairhill."),
    (["Mara's cellar has no window.", "Mara's cellar is dry."], "Mara's cellar is dry and without a window."),
    (["Mara rows not only in summer.", "Mara rows all year."], "Mara rows all year, in summer too."),
    # German
    (["Der Nutzer isst keinen Käse.", "Mara isst niemals Käse."], "Mara isst niemals Käse."),
    (["Mara hat fünf Ziegen.", "Die 5 Ziegen von Mara stehen in Prüm."], "Mara hat 5 Ziegen in Prüm."),
    (["Mara sammelt Briefmarken.", "Mara hat eine Briefmarkensammlung."], "Mara sammelt Briefmarken."),
    (["Mara zahlt fünfundzwanzig Euro.", "Mara zahlt 25 Euro im Monat."], "Mara zahlt 25 Euro im Monat."),
    (["Laktose verträgt Mara nicht.", "Mara verträgt keine Laktose."], "Mara verträgt keine Laktose."),
    (["Mara spielt sonntags Orgel.", "Mara spielt Orgel in Prüm."], "Mara spielt sonntags in Prüm Orgel."),
    (["Mara ist Schreinerin.", "Mara hat eine Schreinerei."], "Mara ist Schreinerin und hat eine Schreinerei."),
    # French
    (["L'utilisatrice ne boit pas de lait.", "Mara ne boit jamais de lait."], "Mara ne boit jamais de lait."),
    (["Mara a douze oies.", "Les 12 oies de Mara sont à Loches."], "Mara a 12 oies à Loches."),
    (["Mara a soixante-quinze ans.", "Mara a 75 ans."], "Mara a 75 ans."),
    (["Mara vit à Loches.", "Mara vit à Loches avec sa tante."], "Mara vit à Loches avec sa tante."),
    (["Mara court le mardi.", "Mara court tous les mardis."], "Mara court tous les mardis."),
    (["L'atelier de Mara est sans fenêtre.", "Mara a un atelier."], "Mara a un atelier, qui n'a pas de fenêtre."),
    (["Mara joue de l'alto.", "Mara est altiste."], "Mara joue de l'alto."),
    # Spanish
    (["El usuario no come cerdo.", "Mara nunca come cerdo."], "Mara nunca come cerdo."),
    (["Mara tiene treinta y cinco olivos.", "Mara tiene 35 olivos."], "Mara tiene 35 olivos."),
    (["Mara canta en un coro.", "Mara canta en el coro de Úbeda."], "Mara canta en el coro de Úbeda."),
    (
        ["La cita de Mara es el 4 de mayo.", "La cita es el 4 de mayo en Úbeda."],
        "Mara tiene cita el 4 de mayo en Úbeda.",
    ),
    (["Mara es alérgica al polen.", "Mara tiene alergia al polen."], "Mara es alérgica al polen."),
    (["La casa de Mara no tiene patio.", "Mara tiene una casa."], "Mara tiene una casa sin patio."),
    # Russian
    (["Пользователь не ест рыбу.", "Мара не ест рыбу и мясо."], "Мара не ест ни рыбу, ни мясо."),
    (["У Мары две козы.", "Обе козы Мары белые.", "У Мары 2 козы."], "У Мары 2 белые козы."),
    (["Мара живёт в Казани.", "Мара живёт в Казани с тётей."], "Мара живёт в Казани с тётей."),
    (["Мара преподаёт физику.", "Мара — преподаватель физики."], "Мара преподаёт физику."),
    (["Экзамен Мары 4 мая.", "У Мары экзамен в мае, четвёртого числа, 4-го."], "Экзамен Мары 4 мая."),
    (["Мара ездила с Анной.", "С Анной Мара ездила на море."], "Мара ездила с Анной на море."),
    # Italian, Portuguese, Dutch, Polish
    (["Mara ha ventidue galline.", "Mara ha 22 galline a Norcia."], "Mara ha 22 galline a Norcia."),
    (["L'utente non mangia pesce.", "Mara non mangia mai il pesce."], "Mara non mangia mai il pesce."),
    (["Mara tem três gatos.", "Os 3 gatos de Mara são pretos."], "Mara tem 3 gatos pretos."),
    (["O usuário não come carne.", "Mara nunca come carne."], "Mara nunca come carne."),
    (["Mara heeft vier schapen.", "De 4 schapen van Mara staan in Urk."], "Mara heeft 4 schapen in Urk."),
    (["Mara ma pięć kur.", "Mara ma 5 kur w Sanoku."], "Mara ma 5 kur w Sanoku."),
    # Japanese, Chinese, Korean
    (["ユーザーは牡蠣を食べない。", "真弓は牡蠣が苦手で食べられない。"], "真弓は牡蠣が苦手で食べない。"),
    (["真弓は猫を二匹飼っている。", "真弓の猫2匹は黒い。"], "真弓は黒い猫を2匹飼っている。"),
    (["真弓は松江に住んでいる。", "真弓は松江の川沿いに住む。"], "真弓は松江の川沿いに住んでいる。"),
    (["真弓の試験は2026年5月4日だ。", "真弓は五月四日に試験を受ける。"], "真弓の試験は2026年5月4日だ。"),
    (["真弓は図書館に勤めなければならない。", "真弓は図書館に勤める。"], "真弓は図書館に勤める。"),
    (["用户不吃花生。", "小梅从不吃花生。"], "小梅不吃花生。"),
    (["小梅有三只猫。", "小梅的3只猫都是白色的。"], "小梅有3只白色的猫。"),
    (["小梅住在苏州。", "小梅住在苏州的河边。"], "小梅住在苏州的河边。"),
    (["미라는 부산에 산다.", "미라는 부산에서 언니와 산다."], "미라는 부산에서 언니와 산다."),
    # Across languages
    (["Mara collects clocks.", "Die Nutzerin sammelt Uhren."], "Mara collects clocks."),
    (["Mara has 3 hens.", "У Мары три курицы."], "У Мары три курицы."),
    (["Mara does not smoke.", "真弓はたばこを吸わない。"], "Mara does not smoke."),
]

RESTATED = [("five metres", "5 metres")]
"""What the right merges above write in another form, as a verification quotes it in parts of their own."""

WRONG: list[tuple[list[str], str]] = [
    # A value lost, invented or changed
    (["Mara has three hens.", "Mara's hens lay brown eggs."], "Mara has hens, which lay brown eggs."),
    (["Mara has three hens.", "Mara's hens lay brown eggs."], "Mara has four hens, which lay brown eggs."),
    (["Mara hat fünf Ziegen.", "Maras Ziegen stehen in Prüm."], "Mara hat Ziegen in Prüm."),
    (["Mara hat fünf Ziegen.", "Maras Ziegen stehen in Prüm."], "Mara hat 6 Ziegen in Prüm."),
    (["Mara a douze oies.", "Les oies de Mara sont à Loches."], "Mara a des oies à Loches."),
    (["Mara tiene siete olivos.", "Mara poda los olivos."], "Mara tiene olivos y los poda."),
    (["У Мары пять коз.", "Козы Мары белые."], "У Мары белые козы."),
    (["У Мары пять коз.", "Козы Мары белые."], "У Мары шесть белых коз."),
    (["真弓は猫を二匹飼っている。", "真弓の猫は黒い。"], "真弓は黒い猫を飼っている。"),
    (["真弓は猫を二匹飼っている。", "真弓の猫は黒い。"], "真弓は黒い猫を三匹飼っている。"),
    (["小梅有三只猫。", "小梅的猫是白色的。"], "小梅有四只白色的猫。"),
    (["Mara's exam is on 4 May 2026.", "Mara has an exam."], "Mara has an exam in May 2026."),
    # A negation lost, invented or moved
    (["Der Nutzer isst keinen Käse.", "Mara isst Brot."], "Mara isst Käse und Brot."),
    (["Mara ne boit pas de lait.", "Mara boit du thé."], "Mara boit du lait et du thé."),
    (["Mara ne boit pas de lait.", "Mara boit du thé."], "Mara boit du lait mais ne boit pas de thé."),
    (["Mara no come cerdo.", "Mara come pollo."], "Mara come cerdo, pero no come pollo."),
    (["Мара не ест рыбу.", "Мара ест мясо."], "Мара ест рыбу, но не ест мясо."),
    (["真弓は牡蠣を食べない。", "真弓は海老を食べる。"], "真弓は牡蠣も海老も食べる。"),
    (["小梅不吃花生。", "小梅吃核桃。"], "小梅吃花生和核桃。"),
    (["Mara eats figs.", "Mara eats plums."], "Mara does not eat figs and plums."),
    # Contradictions
    (["Mara is allergic to figs.", "Mara is not allergic to figs."], "Mara is and is not allergic to figs."),
    (["Mara hat eine Katze.", "Mara hat keine Katze."], "Mara hat eine Katze und hat keine Katze."),
    (["Mara vit à Loches.", "Mara ne vit pas à Loches."], "Mara vit et ne vit pas à Loches."),
    (["La boda es el 4 de mayo.", "La boda es el 9 de mayo."], "La boda es el 4 o el 9 de mayo."),
    (["Экзамен Мары 4 мая.", "Экзамен Мары 9 мая."], "Экзамен Мары 4 или 9 мая."),
    (["真弓は5月4日に引っ越す。", "真弓は5月9日に引っ越す。"], "真弓は5月4日か9日に引っ越す。"),
    (["小梅住在三楼。", "小梅住在五楼。"], "小梅住在三楼或五楼。"),
    # Names lost or invented, and most of the words
    (["Mara teaches at Fairhill.", "Mara teaches Latin."], "Mara teaches Latin."),
    (["Mara vit à Loches.", "Mara vit avec sa tante."], "Mara vit avec sa tante."),
    (["Mara canta en un coro.", "Mara canta alto."], "Mara canta alto en un coro de Úbeda."),
    (["Мара живёт в Казани.", "Мара живёт с тётей."], "Мара живёт с тётей в Самаре."),
    (["Mara restores old wooden boats.", "Mara sails along the northern coast."], "Mara is busy."),
    (["真弓は古い木造船を修理している。", "真弓は北海岸を帆走する。"], "真弓は忙しい。"),
    # Two people
    (["Priscilla likes figs.", "Mara likes plums."], "Priscilla and Mara like figs and plums."),
    # Numbers and dates in another form
    (["Mara's exam is on 2026-05-04.", "Mara's exam is on May 4th, 2026."], "Mara's exam is on 4 May 2026."),
    (["Mara meets Priscilla at 5 pm.", "Mara sees Priscilla at 17:00."], "Mara meets Priscilla at 17:00."),
    (["Maras Prüfung ist am 04.05.2026.", "Maras Prüfung ist am 4. Mai."], "Maras Prüfung ist am 4. Mai 2026."),
]

LITERAL: list[tuple[list[str], str]] = [
    (["Mara keeps bees.", "Mara keeps bees on the roof."], "Mara keeps bees on the roof."),
    (["Mara keeps bees.", "MARA  keeps Bees!"], "mara keeps bees"),
    (["Mara teaches Latin.", "Mara rows."], "Mara rows. Mara teaches Latin."),
    (["Mara has 2 cats.", "Mara has 2 dogs."], "Mara has 2 cats, and Mara has 2 dogs."),
    (["Mara has 2 cats", "Mara has 2 cats called Tilly and Bo"], "Mara has 2 cats called Tilly and Bo."),
    (["Мара живёт в Казани.", "Мара живёт в Казани с тётей."], "Мара живёт в Казани с тётей."),
    (["小梅住在苏州。", "小梅住在苏州的河边。"], "小梅住在苏州的河边。"),
]
"""Sources that stand literally in their merge."""

NUMBERS: list[tuple[list[str], str]] = [
    (["Mara takes 0.125 mg of digoxin.", "Mara takes digoxin."], "Mara takes 125 mg of digoxin."),
    (["Mara takes 125 mg of digoxin.", "Mara takes digoxin."], "Mara takes 0.125 mg of digoxin."),
    (["Mara owes 1.250 euros.", "Mara owes money."], "Mara owes 1250 euros."),
    (["Mara paid 3,141 for it.", "Mara paid."], "Mara paid 3141 for it."),
    (["The code is 0.050.", "There is a code."], "The code is 50."),
    (["Mara moved on 2025-03-04.", "Mara moved."], "Mara moved on 2025-04-03."),
    (["Mara moved on 04/03/2025.", "Mara moved."], "Mara moved on 03/04/2025."),
    (["Mara a déménagé le 4 mai.", "Mara a déménagé."], "Mara a déménagé le 4 juin."),
    (["Mara's exam is on 2026-05-04.", "Mara has an exam."], "Mara's exam is on 4 May 2026."),
    (["Mara meets Eva at 17:00.", "Mara meets Eva."], "Mara meets Eva at 5 pm."),
    (["Mara lives in flat 12a.", "Mara lives in a flat."], "Mara lives in flat 12b."),
    (["Mara has 3 hens.", "Mara's hens lay brown eggs."], "Mara has hens, which lay brown eggs."),
    (["Mara has 3 hens.", "Mara's hens lay brown eggs."], "Mara has 4 hens, which lay brown eggs."),
    (["Mara has 3 hens.", "Mara has 3 hens."], "Mara has 3 hens, 3 hens and 3 hens."),
    (["Mara has 2 cats and 2 dogs.", "Mara has a barn."], "Mara has 2 cats, dogs and a barn."),
    (["Mara meets Eva on 4 May.", "Mara sees Eva."], "Mara meets Eva on 5 May."),
]
"""Merges with another number or date than their sources, or with the same one in another form."""
