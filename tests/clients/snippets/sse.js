// The events of a stream that was fetched. (`EventSource` cannot be used: it only knows GET.)
export async function* events(answer) {
  if (!answer.ok) throw new Error((await answer.json()).error.message);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = "", piece; !(piece = await reader.read()).done; ) {
    const frames = (rest + piece.value).split("\n\n");
    rest = frames.pop();
    for (const frame of frames) {
      const data = frame.split("\n").find((line) => line.startsWith("data: "))?.slice(6);
      if (data && data !== "[DONE]") yield JSON.parse(data);
    }
  }
}
