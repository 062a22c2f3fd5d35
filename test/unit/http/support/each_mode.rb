# frozen_string_literal: true

require "timeout"
require_relative "served_queue"

module HTTPSupport
  # Runs a test in both modes: direct mode, and with a real reactor.
  module EachMode
    MODES = { direct: ServedWork, reactor: ServedQueue }.freeze

    def self.extended(test)
      test.include(Clients)
    end

    def in_each_mode(name, &block)
      MODES.each do |mode, kind|
        define_method("test_#{name}_#{mode}") do
          @kind = kind
          instance_exec(&block)
        end
      end
    end

    # Helpers for such a test.
    module Clients
      include Events

      def teardown
        @clients&.each(&:close)
        @served&.stop
      end

      def serve(app = nil, **settings, &block)
        @served = @kind.new(app || block, **settings).start
      end

      def direct? = @kind == ServedWork

      def connect
        @served.connect.tap { |client| (@clients ||= []) << client }
      end

      # @return [Socket] after sending this
      def request(fields = "", path: "/", verb: "GET", version: "1.1", behind: "")
        connect.tap { |client| client.write("#{verb} #{path} HTTP/#{version}\r\nHost: a\r\n#{fields}\r\n#{behind}") }
      end

      # @return [String] everything until the end
      def all_of(client)
        Timeout.timeout(20) { client.read }
      end

      def head_of(client)
        Timeout.timeout(20) { client.gets("\r\n\r\n") }
      end

      # @return [String] status line and body of a new request that must be served
      def ask(path = "/ask")
        all_of(request("Connection: close\r\n", path: path)).then { |text| text[/\A[^\r]+/] + text[/\r\n\r\n.*/m] }
      end

      def wait_for_jobs(count)
        wait_until { @served.worker.called(:job_finished).size >= count }
      end

      def reset(client)
        @clients.delete(client)
        client.setsockopt(Socket::Option.linger(true, 0))
        client.close
      end
    end
  end
end
