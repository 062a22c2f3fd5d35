# frozen_string_literal: true

require "test_helper"
require "net/http"
require "pando/fork_safety/libraries/known"
require "support/in_child"
require "support/sink"

# A child lets go of its parent's connection, and the parent goes on with it.
class LibrariesNetHTTPTest < Minitest::Test
  include Support::InChild

  def setup
    port = ->(_record, socket) { socket.to_io.remote_address.ip_port.to_s }
    @sink = Support::Sink.new(/./ => port)
  end

  def teardown = @sink.close

  def test_each_has_a_connection_of_its_own
    assert_apart(Net::HTTP.new("127.0.0.1", @sink.port))
  end

  def test_with_tls_too
    http = Net::HTTP.new("127.0.0.1", @sink.tls_port)
    http.use_ssl = true
    http.verify_mode = OpenSSL::SSL::VERIFY_NONE
    assert_apart(http)
  end

  def test_there_may_be_none
    http = Net::HTTP.new("127.0.0.1", @sink.port)
    [nil, http].each { |one| assert_nil Pando::ForkSafety::Libraries::NetHTTP.forget(one) }
  end

  private

  def assert_apart(http)
    http.start
    own = http.get("/").body
    child = in_child do
      Pando::ForkSafety::Libraries::NetHTTP.forget(http)
      [http.started?, http.start.get("/").body]
    end

    refute child.first
    refute_equal own, child.last
    assert_equal own, http.get("/").body
  ensure
    http.finish if http.started?
  end
end
