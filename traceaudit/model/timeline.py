"""The kernel-timeline graph: host calls and device ops as nodes, what made each wait for another as typed edges.

Nodes are the host API calls that launch, wait or block, and the device ops of one device. An edge says that its target
could not begin (a waiting call: could not return) before its source was done. Stored as arrays, so that traces with
millions of ops fit; `Timeline.to_networkx` gives a graph object for one step.

Edges are kept only when they lead forward in one fixed order of the nodes (launches by their start, ops by their start,
waiting calls by their end), so the graph has no cycle whatever the trace holds; the rest is counted in `dropped`.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from traceaudit.model.dependencies import EdgeType, Nodes, NodeType, edges_of, nodes_of
from traceaudit.model.deviceview import DeviceView
from traceaudit.model.schema import I8, I64, Kind

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["EdgeType", "NodeType", "Timeline", "timeline_of"]


@dataclass(frozen=True, slots=True)
class Timeline:
    """The graph of one device as arrays.

    Attributes
    ----------
    view
        The device.
    row
        Row of each node: in `HostRows` for calls, in the view's ops for ops. Calls come first; a blocking call with
        ops of its own is two nodes, one that launches and one that waits.
    node_type
        `NodeType` of each node.
    start_ns, end_ns
        When each node ran.
    step
        Step of each node by the start of its call or launch, -1 outside steps.
    source, target
        Nodes at the ends of each edge.
    edge_type
        `EdgeType` of each edge.
    slack_ns
        Time by which the source could have been later without delaying the target: target's start (a waiting call: its
        end) minus source's end (for launches: source's start).
    inferred
        Whether an edge follows from order and timing, and not from a record of the wait.
    order
        Nodes in an order in which every edge leads forward.
    dropped
        Edges left out because they lead backward (clock skew).
    """

    view: DeviceView
    row: I64
    node_type: I8
    start_ns: I64
    end_ns: I64
    step: I64
    source: I64
    target: I64
    edge_type: I8
    slack_ns: I64
    inferred: npt.NDArray[np.bool_]
    order: I64
    dropped: int

    def __len__(self) -> int:
        """Return the number of nodes."""
        return len(self.row)

    @property
    def queue(self) -> I64:
        """Stream of ops, thread of calls, of each node."""
        calls = self.node_type != NodeType.OP
        queues = (self.view.trace.host.thread[self.row[calls]], self.view.ops.stream[self.row[~calls]])
        return np.concatenate(queues).astype(np.int64)

    def to_networkx(self, step: int | None = None) -> "nx.DiGraph[int]":
        """Return the graph of one step (None: of the whole trace) as a `networkx.DiGraph`.

        Node attributes: ``label`` (name), ``type`` (launch, op, sync, wait), ``kind`` (of ops, else ""), ``start_ns``,
        ``end_ns``, ``duration_ns``, ``step``, ``queue`` (stream of ops, thread of calls). Edge attributes: ``type``
        (host, launch, stream, event, sync, graph), ``slack_ns``, ``inferred``. All values can be written to GraphML.
        """
        import networkx as nx

        graph: nx.DiGraph[int] = nx.DiGraph()
        chosen = np.ones(len(self), np.bool_) if step is None else self.step == step
        for node in np.flatnonzero(chosen).tolist():
            graph.add_node(node, **self._attributes(node))
        kept = chosen[self.source] & chosen[self.target]
        for edge in np.flatnonzero(kept).tolist():
            graph.add_edge(
                int(self.source[edge]),
                int(self.target[edge]),
                type=EdgeType(int(self.edge_type[edge])).name.lower(),
                slack_ns=int(self.slack_ns[edge]),
                inferred=bool(self.inferred[edge]),
            )
        return graph

    def name_of(self, node: int) -> str:
        """Return the name of a node's op or call."""
        row = self.row[node]
        is_op = self.node_type[node] == NodeType.OP
        return self.view.trace.names[int(self.view.ops.name[row] if is_op else self.view.trace.host.name[row])]

    def _attributes(self, node: int) -> dict[str, str | int]:
        kind = NodeType(int(self.node_type[node]))
        row, trace = int(self.row[node]), self.view.trace
        is_op = kind is NodeType.OP
        return {
            "label": self.name_of(node),
            "type": kind.name.lower(),
            "kind": Kind(int(self.view.ops.kind[row])).name.lower() if is_op else "",
            "start_ns": int(self.start_ns[node]),
            "end_ns": int(self.end_ns[node]),
            "duration_ns": int(self.end_ns[node] - self.start_ns[node]),
            "step": int(self.step[node]),
            "queue": int(self.view.ops.stream[row] if is_op else trace.host.thread[row]),
        }


def timeline_of(view: DeviceView) -> Timeline:
    """Build the graph of a device."""
    nodes = nodes_of(view)
    source, target, edge_type, inferred = edges_of(view, nodes)
    position, order = _order(nodes)
    forward = position[source] < position[target]
    source, target, edge_type, inferred = source[forward], target[forward], edge_type[forward], inferred[forward]
    return Timeline(
        view=view,
        row=np.concatenate((nodes.calls, np.arange(nodes.ops, dtype=np.int64))),
        node_type=nodes.node_type,
        start_ns=nodes.start_ns,
        end_ns=nodes.end_ns,
        step=_steps(view, nodes),
        source=source,
        target=target,
        edge_type=edge_type,
        slack_ns=_slack(nodes, source, target, edge_type),
        inferred=inferred,
        order=order,
        dropped=int((~forward).sum()),
    )


def _order(nodes: Nodes) -> tuple[I64, I64]:
    """Return each node's position in the fixed order, and the nodes in that order."""
    key = np.where(nodes.node_type == NodeType.SYNC, nodes.end_ns, nodes.start_ns)
    order = np.lexsort((np.arange(len(key)), nodes.node_type, key))
    position = np.empty(len(order), np.int64)
    position[order] = np.arange(len(order))
    return position, order


def _slack(nodes: Nodes, source: I64, target: I64, edge_type: I8) -> I64:
    ready = np.where(edge_type == EdgeType.LAUNCH, nodes.start_ns[source], nodes.end_ns[source])
    begun = np.where(edge_type == EdgeType.SYNC, nodes.end_ns[target], nodes.start_ns[target])
    return begun - ready


def _steps(view: DeviceView, nodes: Nodes) -> I64:
    """Return the step of each node: of ops by their launch, of calls by their start."""
    marks = view.marks
    call_start = nodes.start_ns[: nodes.first_op]
    own = np.searchsorted(marks.start_ns, call_start, "right") - 1
    own[call_start >= marks.end_ns[-1]] = -1
    return np.concatenate((own, np.maximum(view.windows.step, -1)))
