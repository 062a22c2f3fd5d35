# frozen_string_literal: true

require "net/http"
require "support/live/sockets"
require "support/packages"
require "support/redis_server"

module Bench
  module Live
    # The same with Rails: subscribers of Action Cable, each of which must get each broadcast once and in order. Redis
    # carries the broadcasts, because those who broadcast are in the other pool.
    class Cable < Sockets
      KIND = "cable"
      PATH = "/cable"
      # Milliseconds in which a process may not hear of broadcasts yet, though its first clients are subscribed: Rails
      # confirms a second subscription at once, while the adapter's SUBSCRIBE for the first one is on its way.
      DEAF = 500

      def call
        Packages.executable("redis-server", "redis-server")
        Dir.mktmpdir("pando-bench") do |folder|
          @redis = Support::RedisServer.new(folder).start
          super
        ensure
          @redis&.stop
        end
      end

      def to_h = super.merge(broadcasts: @number)

      private

      def app = "cable.ru"
      def count = @options.subscribers
      def bundle = @bundle ||= Bundle.new("bench-live-cable", GEMFILE).prepare
      def environment = { "BENCH_REDIS" => @redis.url }

      def measure(server)
        @http = Net::HTTP.new("127.0.0.1", server.port)
        @number = 0
        super
      end

      def welcome(number)
        super
        @connections.watch(DEAF)
      end

      # A broadcast from web, which all of them get, however many the caller wanted to hear from.
      def converse(_some)
        response = @http.get("/broadcast?number=#{@number += 1}")
        return @unanswered += @wanted unless response.is_a?(Net::HTTPOK)

        expect(@wanted) { @connections.await(@number) }
      end

      # Rails says it in a message, and the clients close their side.
      def parted = @stopped[:farewells]

      def rows
        [*super, ["broadcasts, each to all", @number.to_s], ["stop: disconnect messages", @stopped[:farewells].to_s]]
      end
    end
  end
end
