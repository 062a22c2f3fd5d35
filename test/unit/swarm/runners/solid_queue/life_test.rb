# frozen_string_literal: true

require "test_helper"
require "pando/swarm/runners/solid_queue/life"

# Promise: nobody is taken for dead who may live.
class SolidQueueLifeTest < Minitest::Test
  Life = Pando::Swarm::Runners::SolidQueue::Life

  def test_a_process_that_lives
    refute Life.over?(Process.pid, Life.mark)
  end

  def test_one_that_has_died_and_one_whose_pid_is_anothers_now
    reader, writer = IO.pipe
    pid = fork do
      writer.write(Life.mark)
      writer.close
      exit!(0)
    end
    writer.close
    mark = reader.read

    wait_until(message: "its end") { Life.over?(pid, mark) } # nobody has waited for it yet
    Process.wait(pid)
    assert Life.over?(pid, mark)
    assert Life.over?(Process.pid, mark)
  end

  def test_one_that_nobody_here_can_know_of
    others = [nil, "", "1", Life.mark.sub(/\A\S+/, "other-boot"), Life.mark.sub(/pid:\[\d+/, "pid:[1")]

    others.each { |mark| refute Life.over?(2**22, mark), mark.inspect }
  end

  def test_one_of_another_user
    stub = ->(*) { raise Errno::EPERM }
    Process.stub(:kill, stub) { refute Life.over?(Process.pid, Life.mark.sub(/\d+\z/, "0")) }
  end
end
