# frozen_string_literal: true

Pando::ForkSafety::Libraries::Known.describe "curb" do
  yours note: "It does not notice a fork. A handle that has been used keeps its connection, which parent and child " \
              "then share; Curl.get and the like use one handle of the thread.",
        advice: "after_mold_fork { Thread.current[:curb_curl] = nil } and the same in after_worker_fork; handles of " \
                "your own likewise",
        source: "https://github.com/taf2/curb/blob/master/lib/curl.rb"
end
