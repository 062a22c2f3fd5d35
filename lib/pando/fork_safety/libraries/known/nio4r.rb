# frozen_string_literal: true

Pando::ForkSafety::Libraries::Known.describe "nio4r" do
  handled note: "A selector, as ActionCable has one from its first connection on, would share its epoll set with a " \
                "child. A worker that has made one is not promoted; make none while the app is loaded.",
          source: "https://github.com/socketry/nio4r/blob/main/ext/nio4r/selector.c (no ev_loop_fork)"
  unsafe_after "NIO::Selector", :initialize, because: "a selector was made, whose epoll set a child would share"
end
