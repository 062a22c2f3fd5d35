# frozen_string_literal: true

Pando::ForkSafety::Libraries::Known.describe "ruby-vips" do
  handled note: "After a fork libvips waits for threads that the child lacks: an operation hangs. The first one that " \
                "a worker runs rules it out as the next mold; run none while the app is loaded.",
          source: "https://github.com/libvips/ruby-vips/issues/396"
  threads(/\Alibvips worker\z/, unsafe: true)
  unsafe_after "Vips::Operation", :call, singleton: true, because: "libvips was used, whose threads no child has"
end
