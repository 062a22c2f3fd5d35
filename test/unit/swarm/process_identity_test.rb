# frozen_string_literal: true

require "json"
require "test_helper"
require "pando/swarm/process_identity"

# Promise: no process is taken for dead that may be alive.
class ProcessIdentityTest < Minitest::Test
  Identity = Pando::Swarm::ProcessIdentity

  def test_a_living_process
    refute Identity.surely_dead?(Process.pid, Identity.mark)
    assert_equal :alive, Identity.state(Identity.here)
  end

  def test_a_dead_process_and_one_whose_pid_belongs_to_another_now
    reader, writer = IO.pipe
    pid = fork do
      writer.write(JSON.generate([Identity.mark, Identity.here]))
      writer.close
      exit!(0)
    end
    writer.close
    mark, here = JSON.parse(reader.read)

    wait_until(message: "its end") { Identity.surely_dead?(pid, mark) } # nobody has waited for it yet
    assert_equal :dead, Identity.state(here)
    Process.wait(pid)
    assert Identity.surely_dead?(pid, mark)
    assert Identity.surely_dead?(Process.pid, mark)
    [here, here.merge("pid" => Process.pid)].each { |identity| assert_equal :dead, Identity.state(identity) }
  end

  def test_a_process_that_cannot_be_known_here
    others = [nil, "", "1", Identity.mark.sub(/\A\S+/, "other-boot"), Identity.mark.sub(/pid:\[\d+/, "pid:[1")]
    others.each { |mark| refute Identity.surely_dead?(2**22, mark), mark.inspect }

    [{ "place" => "elsewhere" }, { "pid" => nil }, { "pid" => 0 }, { "pid" => "1" }].each do |difference|
      assert_equal :unknown, Identity.state(Identity.here.merge(difference)), difference.inspect
    end
  end

  def test_a_process_of_another_user
    stub = ->(*) { raise Errno::EPERM }
    Process.stub(:kill, stub) do
      refute Identity.surely_dead?(Process.pid, Identity.mark.sub(/\d+\z/, "0"))
      assert_equal :alive, Identity.state(Identity.here.merge("started" => 0))
    end
  end
end
