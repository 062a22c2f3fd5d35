# frozen_string_literal: true

# The clients of a chaos run, in a separate process: main.rb SOCKET PORT SEED CLIENTS DEPTH APART. DEPTH is the number
# of pipelined requests, APART the path of another pool, or empty. It ends when stdin does, after the requests that are
# under way. Each line of stdout is the outcome of a request.

require "chaos/clock"
require "chaos/load/client"

socket, port, seed, clients, depth, apart = ARGV
ways = [-> { UNIXSocket.new(socket) }, -> { TCPSocket.new("127.0.0.1", port.to_i) }]
lock = Mutex.new
number = 0
stopping = false
next_number = -> { lock.synchronize { "k#{number += 1}" } }
report = ->(exchange) { $stdout.syswrite("#{exchange}\n") }

threads = Array.new(clients.to_i) do |index|
  client = Chaos::Load::Client.new(ways, Random.new(seed.to_i + index), next_number, report, depth.to_i,
                                   (apart unless apart.empty?))
  Thread.new { client.run { stopping } }
end
$stdin.read
stopping = true
threads.each(&:join)
