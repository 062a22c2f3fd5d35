# frozen_string_literal: true

require_relative "library_app"

# A gRPC stub that is used while the app is loaded, and by every worker: Pando stops and starts gRPC's threads. Older
# versions do not survive a fork after a call.
class GRPCTest < Minitest::Test
  include LibraryApp

  LIBRARIES = %w[grpc].freeze

  def test_each_worker_has_a_connection_of_its_own
    skip "this gRPC is too old" unless forkable?

    survive_reforks
    assert_match(/\bgrpc /, verdicts["handled"])
    assert_empty @server.events("library.failed")
  end

  def test_a_worker_that_has_called_through_an_old_one_is_not_promoted
    skip "this gRPC is new enough" if forkable?

    ask_every_worker(0)
    wait_until { @server.events("worker.unsafe").size == LibraryApp::WORKERS }
    assert_match(/\Agrpc: /, @server.events("worker.unsafe").first["reason"])
    answer = @server.wait_for("refork.started", "refork.refused") { @server.signal("USR2") }
    assert_equal "refork.refused", answer["event"]
    ask_every_worker(0)
  end

  private

  def app = "grpc"
  def environment = { "APP_GRPC" => "127.0.0.1:#{@port}" }
  def forkable? = Gem::Version.new(verdicts["handled"][/grpc ([\d.]+)/, 1]) >= Gem::Version.new("1.80")

  def prepare
    @stdin, server_stdin = IO.pipe.reverse
    output, server_output = IO.pipe
    @echo = Process.spawn(@bundle.environment, Gem.ruby, File.join(LibraryApp::FIXTURES, "grpc/server.rb"),
                          in: server_stdin, out: server_output)
    [server_stdin, server_output].each(&:close)
    @port = Integer(output.gets)
  end

  def clean_up
    @stdin&.close
    Process.wait(@echo) if @echo
  end
end
