# frozen_string_literal: true

require "test_helper"
require "support/servers"

# Promise: README's first command serves an application, and shows a refork after some requests.
class ExampleTest < Minitest::Test
  include Support::Servers

  APP = Support::Checkout.path("examples/hello.ru")
  WARMED = %r{\AHello from pando worker \d gen [1-9] busy \(pid \d+\): GET /}
  # README's loop.
  REQUESTS = 500

  def test_it_reforks_by_itself_and_says_what_its_workers_have_inherited
    server = serve(config: "workers 2; refork :auto", arguments: [APP])
    REQUESTS.times { server.get("/") }
    server.wait_past("refork.finished", generation: 1)
    answer = nil
    # A replaced worker may be about to leave, and take a last request.
    wait_until(message: "an answer of a new worker") { WARMED.match?(answer = server.get("/").body) }

    assert_match(/knows 40 pages and wrote 0 of them itself$/, answer)
  end
end
