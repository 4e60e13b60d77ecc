"""Says what happens to Books: ``book-controller``. Its CRD: ``book-controller crd | kubectl apply -f -``."""

import argparse
import sys

import kubeloop
from kubeloop import Added, CustomResource, Deleted, Field, Items, Model, custom_resource, events


class BookSpec(Model):
    """What is known about a book."""

    title: str = Field(description="Title of the book.")
    authors: Items[str] | None = Field(default=None, description="Names of its authors.")


@custom_resource("example.technosophos.com/v1")
class Book(CustomResource[BookSpec]):
    """A book."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="book-controller", description=__doc__)
    parser.add_argument("--namespace", default="default", help="where to watch (default: %(default)s)")
    parser.add_argument("command", nargs="?", choices=["crd"], help="print the CRD and exit")
    args = parser.parse_args()
    if args.command == "crd":
        print(Book.crd_yaml(), end="")
        return 0
    stop = kubeloop.StopEvent()
    try:
        client = kubeloop.connect(kubeloop.load_config())
    except kubeloop.ConfigError as error:
        print(error, file=sys.stderr)
        return 2
    with kubeloop.stop_on_signals(stop):
        for event in events(client, Book, args.namespace, stop=stop):
            match event:
                case Added(book):
                    print(f"Added a book {book.name} with title '{book.spec.title}'", flush=True)
                case Deleted(book):
                    print(f"Deleted a book {book.name}", flush=True)
                case _:
                    print("another event", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
