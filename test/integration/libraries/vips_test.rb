# frozen_string_literal: true

require_relative "library_app"

# libvips does not survive a fork: a worker that has used it is not promoted.
class VipsTest < Minitest::Test
  include LibraryApp

  LIBRARIES = %w[ruby-vips].freeze

  def test_a_worker_that_made_an_image_is_not_promoted
    0.upto(LibraryApp::REFORKS) do |generation|
      ask_every_worker(generation)
      user = image["worker"]
      assert_equal [user], unsafe_in(generation)
      next if generation == LibraryApp::REFORKS

      assert_equal generation + 1, @server.refork["generation"]
      refute_equal user, @server.events("generation.current").last["source"]
    end
    assert_empty(troubles.reject { |event| event["event"] == "worker.unsafe" })
  end

  def test_there_is_no_refork_once_every_worker_has
    ask_every_worker(0, "/image")
    wait_until { unsafe_in(0).size == LibraryApp::WORKERS }

    answer = @server.wait_for("refork.started", "refork.refused") { @server.signal("USR2") }
    assert_equal "refork.refused", answer["event"]
  end

  private

  def app = "vips"

  def obstacle
    "libvips is not installed" if Dir["/usr/lib/*/libvips.so.42*"].empty?
  end

  def image
    answer = ask("/image", "blurred")
    assert_equal 255, answer["average"]
    @server.wait_past("worker.unsafe", pid: answer["worker"])
    answer
  end

  def unsafe_in(generation)
    events = @server.events("worker.unsafe").select { |event| event["generation"] == generation }
    events.each { |event| assert_match(/\Aruby-vips: /, event["reason"]) }
    events.map { |event| event["pid"] }
  end
end
