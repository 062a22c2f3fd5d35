# frozen_string_literal: true

require_relative "library_app"

# A gRPC stub that is used while the app is loaded, and by every worker: Pando stops and starts gRPC's threads.
class GRPCTest < Minitest::Test
  include LibraryApp

  def test_each_worker_has_a_connection_of_its_own
    survive_reforks
    assert_match(/\bgrpc /, verdicts["handled"])
    assert_empty @server.events("library.failed")
  end

  private

  def app = "grpc"

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

  def environment = { "APP_GRPC" => "127.0.0.1:#{@port}" }
end
