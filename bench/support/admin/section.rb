# frozen_string_literal: true

require "net/http"
require "socket"
require "support/cpu_time"
require "support/live/section"

module Bench
  module Admin
    # A part of bench/admin.
    class Section < Live::Section
      MONITOR = /\Apando monitor\b/
      ADMIN = /\Apando admin\b/

      private

      def admin_port = @admin_port ||= TCPServer.open("127.0.0.1", 0) { |server| server.addr[1] }
      def admin = "admin \"127.0.0.1:#{admin_port}\"\n"

      # @return [String] the answer's body
      # @raise [SystemCallError, IOError, Timeout::Error]
      def get(path, connection = nil)
        answer = connection ? connection.get(path) : Net::HTTP.get_response("127.0.0.1", path, admin_port)
        raise Server::Failed, "#{path}: #{answer.code} #{answer.body}" unless answer.is_a?(Net::HTTPOK)

        answer.body
      end

      # A connection that stays, as Prometheus keeps it.
      def connected(&block) = Net::HTTP.start("127.0.0.1", admin_port, keep_alive_timeout: 60, &block)

      def milliseconds(seconds) = format("%.1f", seconds * 1000)
    end
  end
end
