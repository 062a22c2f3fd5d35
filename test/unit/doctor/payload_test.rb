# frozen_string_literal: true

require "test_helper"
require "socket"
require "tmpdir"
require "support/in_child"
require "pando/doctor"
require "pando/doctor/subject/payload"

# What the doctor's own server does otherwise than the user's.
class DoctorPayloadTest < Minitest::Test
  include Support::InChild

  # Slow requests give it time enough to be let go.
  def test_the_mold_stays_until_it_has_been_looked_at
    server = Pando::Server.new(Pando::Config.load(["config.ru"]))
    payload = Pando::Doctor::Subject::Payload.new(server, nil, { patience: 1.0 })

    assert_equal(:auto, server.config.mold)
    assert_equal(:keep, payload.options.mold)
  end

  # The user's flags and file hold in all but what the stage needs.
  def test_the_stage_sets_its_own_workers_and_listener
    Dir.mktmpdir do |folder|
      found = in_child do
        config = built(folder, %w[--workers auto --listen 127.0.0.1:80 --refork auto --timeout 7 -- config.ru]).config
        [config.workers, config.listen.map(&:to_s), config.refork.name, config.timeout, config.reactor]
      end

      assert_equal([3, ["unix:#{folder}/listener"], "manual", 7.0, false], found)
    end
  end

  def test_the_number_of_its_workers_stays
    config = Pando::Config.load(%w[--workers auto config.ru])
    payload = Pando::Doctor::Subject::Payload.new(Pando::Server.new(config), nil, { patience: 1.0 })

    refute(payload.options.auto_workers)
  end

  # The user's own server may have them.
  def test_it_has_no_file_or_socket_of_the_server
    config = Pando::Config.load(%w[--pidfile server.pid --control control.sock --admin unix:admin.sock config.ru])
    options = Pando::Doctor::Subject::Payload.new(Pando::Server.new(config), nil, { patience: 1.0 }).options

    assert_equal([nil, nil, nil], [options.pidfile, options.control, options.admin])
  end

  # Ruby forgets which line made an object that it has moved.
  def test_the_heap_is_not_compacted
    compactions = in_child do
      before = GC.stat(:compact_count)
      config = Pando::Config.load(["config.ru"])
      Pando::Doctor::Subject::Payload.new(Pando::Server.new(config), nil, { patience: 1.0 }).prepare
      GC.stat(:compact_count) - before
    end

    assert_equal(0, compactions)
  end

  # Its worker measures lazy state in this time, and the monitor must not kill it meanwhile.
  def test_the_monitor_waits_for_as_long_as_the_measurement_of_lazy_state_may_take
    longest = Pando::Doctor::LazyStateMeasurement.new(slow_requests, [], [], 200.0, parallel: false, threads: true)
    config = Pando::Config.load(["config.ru"])
    payload = Pando::Doctor::Subject::Payload.new(Pando::Server.new(config), nil, { patience: 200.0 })

    assert_in_delta 680, longest.within
    assert_operator payload.options.longest_wait, :>=, longest.within
  end

  private

  def slow_requests = Pando::Doctor::Evidence.new("/app").tap { |evidence| evidence.round_seconds = 1000.0 }

  def built(folder, argv)
    wire = Socket.new(:UNIX, :DGRAM)
    wire.bind(Addrinfo.unix(File.join(folder, "wire")))
    ENV["PANDO_DOCTOR"] = JSON.generate(folder: folder, patience: 1.0, workers: 3)
    Pando::Doctor::Subject::Payload.build(argv)
  end
end
