# Work for a Python interpreter: many small objects, made and dropped; strings, lists, dictionaries, classes, JSON.
import json
import random
import sys

random.seed(1)


class Point:
    def __init__(self, x, y):
        self.x, self.y = x, y

    def moved(self, by):
        return Point(self.x + by, self.y - by)


total = 0
for turn in range(int(sys.argv[1])):
    points = [Point(i, float(i)).moved(turn) for i in range(3000)]
    by_name = {f"point {p.x}": (p.x, p.y) for p in points}
    text = json.dumps([{"name": name, "at": at} for name, at in by_name.items()])
    back = json.loads(text)
    back.sort(key=lambda record: record["name"])
    words = " ".join(record["name"] for record in back).split()
    total += len(text) + len(set(words)) + sum(len(word) for word in words)
print(total)
