# frozen_string_literal: true

require "support/kept_connection"

module Support
  # A load balancer: it checks the health of each server repeatedly, and forwards its clients' requests to the healthy
  # ones, on connections that it keeps.
  #
  #     balancer = Balancer.start([one, other], clients: 4)
  #     balancer.wait_until_in_rotation([other])
  #     balancer.stop.statuses # => {200=>4711}
  class Balancer
    INTERVAL = 0.02 # seconds between two health checks of a server
    PATIENCE = 60

    def self.start(servers, **options) = new(servers, **options)

    # @param servers [Array<ServerProcess>] all of them healthy
    def initialize(servers, clients: 4, health: "/up", path: "/")
      @servers = servers
      @health = health
      @path = path
      @rotation = servers.dup
      @answers = Queue.new
      @stopping = false
      @checker = Thread.new { check until @stopping }
      @clients = Array.new(clients) { |number| Thread.new { send_requests(number) } }
    end

    def wait_until_in_rotation(servers)
      deadline = now + PATIENCE
      until @rotation == servers
        raise "not the expected rotation within #{PATIENCE} s" if now > deadline

        IO.select(nil, nil, nil, INTERVAL)
      end
      wait_for_more(@clients.size * 2) # requests that were under way are answered
    end

    def wait_for_more(count)
      wanted = @answers.size + count
      deadline = now + PATIENCE
      until @answers.size >= wanted
        raise "only #{@answers.size} of #{wanted} answers within #{PATIENCE} s" if now > deadline

        IO.select(nil, nil, nil, INTERVAL)
      end
    end

    # @return [Hash{Integer, String => Integer}] how often each status or error occurred
    def stop
      @stopping = true
      [@checker, *@clients].each(&:join)
      Array.new(@answers.size) { @answers.pop }.tally
    end

    private

    def check
      @rotation = @servers.select { |server| well?(server) }
      IO.select(nil, nil, nil, INTERVAL)
    end

    def well?(server)
      server.get(@health).status == 200
    rescue SystemCallError, IOError
      false
    end

    def send_requests(number)
      kept = {}
      until @stopping
        server = @rotation.rotate(number += 1).first
        ask(kept, server) if server
      end
    ensure
      kept.each_value(&:close)
    end

    def ask(kept, server)
      connection = kept[server] ||= KeptConnection.new(server.connect)
      answer = connection.ask(@path).answer
      kept.delete(server).close if answer.last?
      @answers << answer.status
    rescue SystemCallError, IOError => e
      kept.delete(server)&.close
      @answers << "#{e.class}: #{e.message}"
    end

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end
