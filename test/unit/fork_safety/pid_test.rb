# frozen_string_literal: true

require "test_helper"
require "pando/fork_safety"
require_relative "../sys/support/in_child"

# Pando.pid and ForkCheck against the kernel's word, in every kind of child.
class ForkPidTest < Minitest::Test
  include SysSupport::InChild

  def kernel_pid = File.readlink("/proc/self").to_i
  def right? = Pando.pid == kernel_pid

  # The block's answer from a process that it makes and that the block of `made` sees as itself.
  def told
    reader, writer = IO.pipe
    yield ->(answer = right?) { writer.syswrite("#{answer}\n") }
    writer.close
    reader.gets&.chomp
  ensure
    reader.close
  end

  def test_it_is_right_after_each_kind_of_fork
    answers = in_child do
      Pando::Sys.subreaper!
      {
        "here" => told(&:call),
        "fork" => told { |tell| Process.wait(fork { tell.call && leave }) },
        "popen" => told { |tell| IO.popen("-") { |io| io ? io.read : tell.call && leave } },
        "nested" => told { |tell| Process.wait(fork { Process.wait(fork { tell.call && leave }) && leave }) },
        "thread" => told { |tell| Thread.new { Process.wait(fork { tell.call && leave }) }.join },
        "daemon" => told { |tell| Process.wait(fork { Process.daemon(true, true) && tell.call && leave }) },
        "sibling" => told { |tell| Pando::Sys.fork_sibling ? Process.wait : tell.call && leave },
        "parent" => told { |tell| fork_and_tell(tell) }
      }
    end

    assert_equal ["true"], answers.values.uniq, answers.inspect
  end

  def test_commands_do_not_change_it
    before = Pando.pid
    system("true")
    Process.wait(spawn("true"))

    assert_equal [before, kernel_pid], [Pando.pid, Pando.pid]
  end

  def test_an_executed_image_has_its_own
    script = "require 'pando/native'; print Pando.pid == File.readlink('/proc/self').to_i"
    output = IO.popen("-") do |io|
      io ? io.read : exec(RbConfig.ruby, "-I", Support::Checkout.path("lib"), "-e", script)
    end

    assert_equal "true", output
  end

  def test_the_check_tells_a_process_from_the_one_it_was_made_in
    check = Pando::ForkSafety::ForkCheck.new
    answers = in_child do
      [check.forked?, check.renew, check.forked?, check.renew,
       told { |tell| Process.wait(fork { tell.call(check.forked?) && leave }) }]
    end

    assert_equal [true, true, false, false, "true"], answers
    refute_predicate check, :forked?
  end

  private

  def fork_and_tell(tell)
    Process.wait(fork { leave })
    tell.call
  end
end
