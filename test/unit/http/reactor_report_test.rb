# frozen_string_literal: true

require "test_helper"
require "ipaddr"
require "socket"
require "pando/http/reactor_report"
require "pando/events/catalogue"
require_relative "support/fake_worker"
require_relative "../cluster/support/clock"

# What the monitor tells of the reactor's counts.
class HTTPReactorReportTest < Minitest::Test
  include HTTPSupport::Events

  NAMES = %w[connections idle in_flight queued shed_connections shed_address shed_queue shed_queue_time shed_stopping
             shed_resources refused_malformed refused_cut_off evicted slow_readers
             shed_file_size refused_body_size refused_spool_size refused_too_large refused_unsupported refused_proxy
             refused_header_time refused_body_time failed_502 failed_504 resets retried streams_cut
             cut_readers cut_family cut_network cut_rate spool_failed spool_error shed_spool shed_memory
             head_bytes body_bytes response_bytes spooled_bodies spooled_responses log_error log_dropped].freeze

  ADVICE = Pando::HTTP::ReactorReport::ADVICE

  # Stands for a Channel.
  class Counts
    OF_POOL = %w[queued shed_queue shed_queue_time].freeze

    # @param pools [Integer] how many
    def initialize(pools = 1)
      @stats = NAMES.to_h { |name| [name, 7] }
      @pools = Array.new(pools) { OF_POOL.to_h { |name| [name, 7] } }
      @waits = Array.new(pools) { Array.new(112, 5) }
    end

    def stats = @stats.merge(OF_POOL.to_h { |name| [name, @pools.sum { |stats| stats[name] }] })
    def pool_stats(pool) = @pools.fetch(pool).dup
    def queue_times(pool) = [@waits.fetch(pool).dup, 0]

    def add(pool: 0, **counts)
      counts.slice(*OF_POOL.map(&:to_sym)).each { |name, count| @pools[pool][name.to_s] += count }
      @stats = @stats.merge(counts.to_h { |name, count| [name.to_s, @stats.fetch(name.to_s) + count] })
    end

    def set(**counts) = @stats = @stats.merge(counts.transform_keys(&:to_s))

    # n requests that waited a little less than 2**power microseconds
    def wait(requests, power, pool: 0)
      bucket = (0...112).find { |number| Pando::Histogram.edge(number) > 0.97 * (2**power) / 1e6 }
      @waits[pool][bucket] += requests
    end
  end

  # Stands for Cluster::Reactor::Jobs.
  Jobs = Struct.new(:to_line) do
    def of(pool) = Jobs.new("GET /#{pool}")
  end
  # What a worker knows of a request.
  OF_DIRECT_MODE = %i[request slot generation pid].freeze

  def setup
    @counts = Counts.new
    @jobs = Jobs.new("GET /slow")
    @counts.add(queued: -7)
    @report = report_of(queue(0, 10.0))
  end

  def queue(number, seconds, **more) = Pando::HTTP::ReactorQueue.new(@counts, number, seconds, **more)
  def report_of(*queues) = Pando::HTTP::ReactorReport.new(@counts, queues, spool: "/var/spool/shop")

  def tick(looks = 1)
    events_of { looks.times { @report.tick(@jobs) } }.map { |event| [event.name, event.payload] }
  end

  def test_tells_nothing_where_nothing_happened
    @counts.wait(1000, 10)

    assert_empty tick(3)
  end

  def test_tells_each_kind_once_and_what_is_new_only
    @counts.add(shed_queue: 3, shed_address: 1, refused_malformed: 2, failed_504: 1, resets: 1, retried: 4,
                streams_cut: 5, queued: 9)

    assert_equal [["requests.refused", { count: 2, reason: "malformed (2)" }],
                  ["requests.shed", { count: 4, reason: "max_connections_per_address (1), max_queue (3)",
                                      waiting: 9, connections: 7, busy: "GET /slow" }],
                  ["requests.lost", { count: 2, reason: "answered with 504 (1), reset (1)" }],
                  ["requests.retried", { count: 4 }], ["streams.cut", { count: 5 }]], tick
    assert_empty tick
    @counts.add(failed_502: 1)
    assert_equal [["requests.lost", { count: 1, reason: "answered with 502 (1)" }]], tick
  end

  def test_says_what_to_set_for_larger_bodies
    @counts.add(refused_body_size: 2)

    assert_equal [["requests.refused", { count: 2, reason: "max_body_bytes (2)",
                                         advice: ADVICE.fetch("refused_body_size") }]], tick
    @counts.add(refused_body_size: 1, refused_spool_size: 2)
    assert_equal [["requests.refused", { count: 3, reason: "max_body_bytes (1), larger than the spool (2)",
                                         advice: ADVICE.values.join("; ") }]], tick
  end

  def test_tells_of_the_spool
    @counts.add(cut_readers: 2, slow_readers: 1, shed_spool: 3, spool_failed: 4, spool_error: Errno::ENOSPC::Errno - 7)
    events = tick.to_h
    told = events.transform_values { |payload| payload.fetch(:reason) }

    assert_equal({ "requests.shed" => "the spool is full (3)",
                   "requests.lost" => "write_timeout (1), the slowest reader, to free space (2)",
                   "spool.failed" => "No space left on device" }, told)
    assert_equal ["/var/spool/shop", 4], events["spool.failed"].values_at(:path, :count)
    assert_match(/another directory with `spool`/, events["spool.failed"][:advice])
    assert_empty tick
  end

  def test_names_the_slowest_reader
    told = { [Socket::AF_INET, "192.0.2.77"] => "192.0.2.77, 2048 bytes/s",
             [Socket::AF_INET6, "2001:db8:0:a1::5"] => "2001:db8:0:a1::/64, 2048 bytes/s",
             [Socket::AF_UNIX, "0.0.0.0"] => "a client without an address, 2048 bytes/s" }
    told.each do |(family, address), words|
      network = IPAddr.new(address).hton.ljust(8, "\0").unpack1("Q")
      @counts.set(cut_family: family, cut_network: network, cut_rate: 2048)
      @counts.add(cut_readers: 1)

      assert_equal({ "requests.lost" => words }, tick.to_h { |name, payload| [name, payload[:slowest]] })
    end
  end

  def test_what_the_workers_are_at_is_left_out_where_they_are_idle
    @jobs.to_line = nil
    @counts.add(shed_resources: 1)

    assert_equal %i[count reason waiting connections], tick.dig(0, 1).keys
  end

  def report_of_log
    @counts.set(log_error: 0, log_dropped: 0)
    @report = Pando::HTTP::ReactorReport.new(@counts, [queue(0, 10.0)], log: "/var/log/access.log")
  end

  def test_an_access_log_that_cannot_be_written_and_then_can
    report_of_log
    @counts.set(log_error: Errno::ENOSPC::Errno)

    assert_equal([["log.failed", "No space left on device", 0]],
                 tick(5).map { |name, facts| [name, *facts.values_at(:reason, :count)] })
    @counts.set(log_error: 0)
    assert_empty tick(9)
    assert_equal [["log.recovered", { count: 0, path: "/var/log/access.log" }]], tick(5)
    @counts.set(log_error: Errno::ENOSPC::Errno)
    assert_equal ["log.failed"], tick(5).map(&:first)
  end

  # Else a pipe whose reader is a little too slow would recover each second.
  def test_an_access_log_that_loses_lines_now_and_then_has_not_recovered
    report_of_log
    told = Array.new(3) do
      @counts.add(log_dropped: 4)
      tick(8)
    end

    assert_equal([["log.failed", 4]] * 3, told.flatten(1).map { |name, facts| [name, facts[:count]] })
    assert_equal [["log.recovered", { count: 12, path: "/var/log/access.log" }]], tick(3)
  end

  def test_every_name_is_one_that_the_reactor_counts
    require "pando/native"
    channel = Pando::HTTP::Channel.create

    assert_empty NAMES - channel.stats.keys
    assert_empty [Pando::HTTP::ReactorReport::REFUSED, Pando::HTTP::ReactorReport::SHED,
                  Pando::HTTP::ReactorReport::LOST].flat_map(&:keys) - NAMES
    queue = Pando::HTTP::ReactorQueue.new(channel, 0, nil)
    report = Pando::HTTP::ReactorReport.new(channel, [queue])
    report.tick(@jobs)
  end

  # The table of bounds in docs/http.md: their last cells.
  def test_every_reason_in_the_docs_is_one_that_is_told
    page = File.read(Support::Checkout.path("docs/http.md"))
    cells = page[/^\| bound \|.*?\n\n/m].lines.drop(2).filter_map { |line| line.split("|")[4]&.strip }.reject(&:empty?)
    told = { "requests.refused" => :REFUSED, "requests.shed" => :SHED, "requests.lost" => :LOST }

    assert_operator cells.size, :>, 10
    cells.flat_map { |cell| cell.split(/(?=`requests)/) }.each do |cell|
      name, reasons = cell.match(/\A`(.*)`: (.*?);?\s*\z/).captures
      assert_empty reasons.split("; ") - Pando::HTTP::ReactorReport.const_get(told.fetch(name)).values
    end
  end

  def test_every_event_is_in_the_catalogue_with_its_payload
    require "pando/events/catalogue"
    @counts.add(shed_queue: 1, refused_malformed: 1, refused_body_size: 1, cut_readers: 1, retried: 1)
    @counts.wait(1, 25)
    told = tick
    @counts.wait(1, 1)
    told += tick

    assert_equal 6, told.size
    told.each do |name, payload|
      keys = Pando::Events::Catalogue.all.find { |known| known.name == name }&.keys
      assert_equal keys - (name == "requests.lost" ? OF_DIRECT_MODE : []), payload.keys, name
    end
  end

  def test_a_delay_is_told_when_it_begins_and_when_it_is_over
    @counts.wait(50, 8)
    @counts.wait(48, 15)
    @counts.wait(2, 21)
    assert_equal [["queue.delayed", { count: 100, median: 0.00025, p99: 2.048, waiting: 0 }]], tick
    @counts.wait(1, 24)
    assert_empty tick
    @counts.wait(1000, 4)
    @counts.wait(1, 24)
    assert_equal [["queue.recovered", { p99: 0.000015625 }]], tick
    assert_empty tick
  end

  def test_a_delay_begins_at_a_second
    @counts.wait(1, 19)
    assert_empty tick
    @counts.wait(1, 20)
    assert_equal ["queue.delayed"], tick.map(&:first)
  end

  def test_one_request_in_a_hundred_may_wait_longer
    @counts.wait(99, 8)
    @counts.wait(1, 25)
    assert_empty tick
    @counts.wait(98, 8)
    @counts.wait(2, 25)
    assert_equal ["queue.delayed"], tick.map(&:first)
  end

  def test_a_delay_that_lasts_is_told_once_a_minute
    told = Array.new(121) do
      @counts.wait(1, 22)
      tick
    end

    assert_equal(["queue.delayed"] * 3, told.flatten(1).map(&:first))
  end

  def test_a_queue_that_stands_still_has_not_recovered
    @counts.add(queued: 5)
    @counts.wait(1, 25)
    assert_equal ["queue.delayed"], tick.map(&:first)
    assert_empty tick(3)
    @counts.add(queued: -5)

    assert_equal [["queue.recovered", { p99: 0.0 }]], tick
  end

  def test_a_short_queue_timeout_is_missed_sooner
    @report = report_of(queue(0, 0.1))
    @counts.wait(1, 14)
    assert_empty tick
    @counts.wait(1, 15)

    assert_equal ["queue.delayed"], tick.map(&:first)
  end

  def test_each_pool_tells_of_its_queue
    two_pools
    @counts.add(shed_queue: 3, shed_address: 1, queued: 2)
    @counts.add(pool: 1, shed_queue: 2, shed_queue_time: 1, queued: 4)
    shed = tick.map { |name, payload| [name, payload.values_at(:pool, :count, :reason, :waiting, :busy)] }

    assert_equal [["requests.shed", [nil, 1, "max_connections_per_address (1)", 6, "GET /slow"]],
                  ["requests.shed", ["web", 3, "max_queue (3)", 2, "GET /0"]],
                  ["requests.shed", ["reports", 3, "max_queue (2), queue_timeout (1)", 4, "GET /1"]]], shed
    assert_empty tick
  end

  # The report is made in the first pool's turn.
  def test_what_concerns_no_queue_names_no_pool
    two_pools

    @counts.add(resets: 1, retried: 2)
    told = Pando::Events.about(pool: "web") { tick }.map { |name, payload| [name, payload[:pool]] }
    assert_equal [["requests.lost", nil], ["requests.retried", nil]], told
  end

  def test_each_pool_has_delays_of_its_own
    two_pools
    @counts.wait(1, 19)
    @counts.wait(1, 19, pool: 1)
    assert_equal [["queue.delayed", "reports"]], pools_of(tick)
    @counts.wait(1, 20)
    assert_equal [["queue.delayed", "web"], ["queue.recovered", "reports"]], pools_of(tick)
  end

  def pools_of(told) = told.map { |name, payload| [name, payload[:pool]] }

  def two_pools
    @counts = Counts.new(2)
    2.times { |pool| @counts.add(pool: pool, queued: -7) }
    @report = report_of(queue(0, 10.0, name: "web"), queue(1, 0.8, name: "reports"))
  end

  def test_counts_that_somebody_spoilt_raise_nothing
    @counts.add(shed_queue: -7, connections: -3)
    @counts.wait(-5, 28)

    assert_empty tick
  end

  def test_the_monitor_loads_no_more_of_http_for_it
    code = "require 'pando/http/reactor_report'; puts $LOADED_FEATURES.grep(%r{lib/pando/})"
    loaded = IO.popen([RbConfig.ruby, "--disable-gems", "-I", Support::Checkout.path("lib"), "-e", code], &:read)

    assert_equal %w[http/reactor_report.rb], loaded.scan(%r{lib/pando/(http.*)}).flatten.sort
  end
end

# When a queue that does not move is told of.
class HTTPReactorStallTest < Minitest::Test
  include ClusterSupport::Clock
  include HTTPSupport::Events

  # Stands for Cluster::Reactor::Jobs.
  Jobs = Struct.new(:standstill, :workers, :to_line)

  def setup
    super
    @stall = Pando::HTTP::ReactorStall.new
    @jobs = Jobs.new([1], 1, "GET /itself")
  end

  # Six looks, one in a second.
  def told(waiting: 1, &change)
    events = events_of do
      6.times do |number|
        change&.call(number)
        @stall.look(waiting, @jobs)
        elapse 1
      end
    end
    events.map { |event| [event.name, event.payload] }
  end

  def test_five_seconds_are_told_once_with_what_the_worker_is_at_and_the_remedy
    assert_equal [["queue.stalled", { waiting: 1, seconds: 5, busy: "GET /itself",
                                      advice: "the only worker is at this request; to serve more at once, write " \
                                              "workers 2 or set WEB_CONCURRENCY=2" }]], told
    assert_empty told
  end

  def test_the_payload_is_that_of_the_catalogue
    known = Pando::Events::Catalogue.all.find { |event| event.name == "queue.stalled" }

    assert_equal known.keys, told.dig(0, 1).keys
  end

  def test_several_workers_are_counted
    @jobs.workers = 3

    assert_match(/\Aall 3 workers are at requests; .* workers 4 .*=4\z/, told.dig(0, 1, :advice))
  end

  def test_a_pool_of_its_own_is_named_as_the_place
    @stall = Pando::HTTP::ReactorStall.new("reports")

    assert_match(/write workers: 2 in the line of this pool\z/, told.dig(0, 1, :advice))
  end

  def test_a_queue_that_moves_is_none
    assert_empty(told { |number| @jobs.standstill = [number / 5] })
  end

  def test_an_idle_worker_is_none
    @jobs.standstill = nil
    assert_empty told
  end

  def test_no_waiting_request_is_none
    assert_empty told(waiting: 0)
  end

  def test_a_stall_that_is_over_may_come_again
    told
    @stall.look(0, @jobs)

    assert_equal ["queue.stalled"], told.map(&:first)
  end

  def test_a_queue_that_never_empties_is_one_stall
    told
    @jobs.standstill = [2]

    assert_empty told
  end
end
