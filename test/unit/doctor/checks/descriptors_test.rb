# frozen_string_literal: true

require "test_helper"
require "pando/doctor"

# What is made of a descriptor that several processes have open.
class DoctorDescriptorsTest < Minitest::Test
  Doctor = Pando::Doctor
  Checks = Doctor::Checks
  Actor = Doctor::Stage::Actor
  HOLDERS = [Actor.new("mold", nil, 0, 10), Actor.new("worker", 0, 0, 11), Actor.new("worker", 1, 0, 12)].freeze
  USED = { number: 7, site: "/app/lib/store.rb:4", before: false }.freeze
  IO_OBJECT = { number: 7, type: "TCPSocket", location: "/app/config.ru:1", tls: false, ended: false }.freeze

  def test_a_connection_is_a_warning_until_two_processes_have_used_it
    [[[], :warning, "; no worker used it while it served"],
     [[USED], :warning, "; one worker used it, and no other process was seen to"],
     [[USED, USED], :error, ", and 2 workers used it at lib/store.rb:4"],
     [[USED.merge(before: true)], :error, ", and a worker used it at lib/store.rb:4 after another process had"]]
      .each do |uses, severity, words|
        found = judge(uses: uses)

        assert_equal([:shared_socket, severity], [found.kind, found.severity])
        assert_equal("the connection of TCPSocket to 10.0.0.7:6379 is open in 3 live processes (mold gen 0, " \
                     "worker 0 gen 0, worker 1 gen 0)#{words}", found.message)
      end
  end

  def test_what_to_do_depends_on_whether_it_is_used
    assert_match(/\ANothing, if its library replaces/, judge.advice)
    assert_match(/Close the connection in before_fork/, judge(uses: [USED, USED]).advice)
  end

  def test_a_library_that_replaces_what_it_inherits
    io = IO_OBJECT.merge(library: "redis-client")

    assert_equal(:note, judge(io: io).severity)
    assert_includes(judge(io: io).message, "redis-client does not use an inherited one")
    assert_equal(:error, judge(io: io, uses: [USED, USED]).severity, "it did all the same")
  end

  def test_c_code_on_a_unix_socket_or_a_pipe_is_not_seen
    unix = Doctor::SocketTable::Socket.new(:stream, "/run/db.sock", :unix)

    [judge(io: nil, socket: unix), judge(io: nil, link: "pipe:[5]", socket: nil)].each do |found|
      assert_equal(:warning, found.severity)
      assert_includes(found.message, "whether they use it cannot be seen, for it belongs to C code")
    end
    assert_includes(judge(io: nil).message, "no worker used it", "of TCP the kernel tells")
  end

  def test_of_two_generations_the_one_that_shows_the_use_counts
    found = findings(shared, shared(uses: [USED, USED]))

    assert_equal([:error], found.map(&:severity))
  end

  private

  def judge(**facts) = findings(shared(**facts)).first

  def findings(*all)
    evidence = Doctor::Evidence.new("/app")
    all.each { |one| evidence.generations << Doctor::Evidence::Generation.new(shared: [one]) }
    Checks::Descriptors.new(evidence).findings
  end

  def shared(uses: [], io: IO_OBJECT, link: "socket:[5]",
             socket: Doctor::SocketTable::Socket.new(:stream, "10.0.0.7:6379", :tcp))
    descriptor = Doctor::ProcessInfo::Descriptor.new(7, link, {})
    Doctor::SharedDescriptors::Shared.new(open: descriptor, io: io, holders: HOLDERS, uses: uses, socket: socket)
  end
end
