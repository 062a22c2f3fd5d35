# frozen_string_literal: true

require "json"
require "test_helper"
require "pando/swarm/process_identity"

# Promise: no process is taken for dead that may be alive.
class ProcessIdentityTest < Minitest::Test
  Identity = Pando::Swarm::ProcessIdentity

  def test_a_living_process
    assert_equal :alive, Identity.state(Identity.here)
  end

  def test_a_dead_process_and_one_whose_pid_belongs_to_another_now
    reader, writer = IO.pipe
    pid = fork do
      writer.write(JSON.generate(Identity.here))
      writer.close
      exit!(0)
    end
    writer.close
    here = JSON.parse(reader.read)

    wait_until(message: "its end") { Identity.state(here) == :dead } # nobody has waited for it yet
    Process.wait(pid)
    [here, here.merge("pid" => Process.pid)].each { |identity| assert_equal :dead, Identity.state(identity) }
  end

  def test_a_process_that_cannot_be_known_here
    [nil, "", {}].each { |identity| assert_equal :unknown, Identity.state(identity), identity.inspect }

    place = Identity.here["place"]
    [{ "place" => place.sub(/ \S+/, " other-boot") }, { "place" => place.sub(/pid:\[\d+/, "pid:[1") },
     { "place" => "elsewhere" }, { "pid" => nil }, { "pid" => 0 }, { "pid" => "1" }].each do |difference|
      assert_equal :unknown, Identity.state(Identity.here.merge(difference)), difference.inspect
    end
  end

  def test_a_process_of_another_user
    stub = ->(*) { raise Errno::EPERM }
    Process.stub(:kill, stub) do
      assert_equal :alive, Identity.state(Identity.here.merge("started" => 0))
    end
  end
end
