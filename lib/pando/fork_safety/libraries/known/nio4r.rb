# frozen_string_literal: true

require "pando/fork_safety/libraries/selectors"

Pando::ForkSafety::Libraries::Known.describe "nio4r" do
  handled note: "A selector would share its epoll set with a child. A worker in which one is open is not promoted; " \
                "Action Cable's is closed before the fork.",
          source: "https://github.com/socketry/nio4r/blob/main/ext/nio4r/selector.c (no ev_loop_fork)"
  watch { Pando::ForkSafety::Libraries::Selectors.watch }
  before_fork { Pando::ForkSafety::Libraries::Selectors.refuse_live }
end
