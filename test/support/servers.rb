# frozen_string_literal: true

require "json"
require "open3"
require "support/checkout"
require "support/server_process"

module Support
  # For tests that start servers: none of them survives the test, however it ends.
  module Servers
    # @return [ServerProcess] see ServerProcess.start
    def serve(**options)
      ServerProcess.start(**options).tap { |server| servers << server }
    end

    # Sends requests to a server repeatedly in a thread, at least once, while the block runs.
    #
    # @return [Array] statuses in the order of the responses, and errors
    def under_requests(server, path = "/")
      over = false
      client = Thread.new do
        answers = []
        loop do
          answers << status_of(server, path)
          break answers if over
        end
      end
      yield
      over = true
      client.value
    ensure
      over = true
      client&.join
    end

    def teardown
      servers.each(&:kill)
      super
    end

    private

    def servers = @servers ||= []

    # @return [Array<Array>] waiting jobs, and seconds that the oldest has waited, as each job node knows them
    def loads(server)
      text, = Open3.capture2e(*Checkout.pando("status", "--format", "json", "-C", server.folder))
      JSON.parse(text)["processes"].select { |one| one["running"] }.map { |one| one.values_at("lag", "latency") }
    end

    def status_of(server, path)
      server.get(path).status
    rescue SystemCallError, EOFError => e
      e
    end
  end
end
