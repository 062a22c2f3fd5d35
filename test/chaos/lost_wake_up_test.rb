# frozen_string_literal: true

require "test_helper"
require "support/load"
require "support/servers"

# Promise: no request waits for more than a second beside an idle worker.
#
# The kernel wakes one worker for a connection. One that dies before it accepts takes the wake-up along, and the
# others sleep on. A replacement looks into the queue at its start and so would hide that: here it comes late.
class LostWakeUpTest < Minitest::Test
  include Support::Servers

  LIMIT = 1.0 # seconds
  # A wait of this length is no accident: the wake-up was lost.
  NOTICEABLE = 0.1
  WORKERS = 4
  # Rounds at most until the wake-up was lost WANTED times: about one in three kills does it.
  ROUNDS = 20
  WANTED = 3

  def test_when_the_woken_worker_is_killed
    server = serve(config: <<~RUBY)
      reactor false
      workers #{WORKERS}
      refork :manual
      after_worker_fork { hold_while("late") }
    RUBY
    waits = []
    stolen = Support::FairClock.stolen
    ROUNDS.times do
      waits.concat(kill_as_they_wake(server))
      break if waits.count { |wait| wait > NOTICEABLE } >= WANTED
    end

    assert(waits.any? { |wait| wait > NOTICEABLE }, "no wake-up was lost: this test proves nothing")
    assert_operator(waits.max, :<, LIMIT + Support::FairClock.stolen - stolen)
  end

  def test_when_workers_are_replaced
    server = serve(app: Support::Load::APP, config: "workers #{WORKERS}\nrefork :manual")
    load = Support::Load.start(server.method(:connect), clients: 2)
    15.times { server.refork }
    load.stop

    assert_empty(load.failures)
    assert_operator(load.slowest, :<, LIMIT)
  ensure
    load&.stop
  end

  private

  # The kernel wakes the one that has waited longest; the last of them is spared.
  #
  # @return [Array<Float>] how long each request waited, but for those whose worker had accepted already
  def kill_as_they_wake(server)
    victims = idle_workers(server).map(&:pid).sort
    late = server.write("late", "")
    victims.first(WORKERS - 1).filter_map { |pid| ask_and_kill(server, pid) }
  ensure
    File.unlink(late)
  end

  def idle_workers(server)
    wait_until(message: -> { "#{WORKERS} idle workers: #{server.workers}" }) do
      workers = server.workers.select { |worker| worker.title.end_with?("idle") && worker.state == "S" }
      workers if workers.size == WORKERS
    end
  end

  def ask_and_kill(server, pid)
    socket = server.connect
    Process.kill("KILL", pid)
    began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    socket.write("GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    answered = socket.read(1)
    Process.clock_gettime(Process::CLOCK_MONOTONIC) - began if answered
  rescue Errno::EPIPE, Errno::ECONNRESET
    nil
  ensure
    socket&.close
  end
end
