# frozen_string_literal: true

require_relative "../config/config_test_case"
require "support/in_child"
require "pando/cli/check"

# What `pando --check` says of settings that the server would start with all the same.
class CLICheckTest < ConfigTestCase
  include Support::InChild

  def notes(...) = Pando::CLI::Check.new(load_config(...)).notes

  # As a user that no file belongs to: root may write anywhere.
  def notes_for_nobody(text)
    skip "only root can become another user" unless Process.uid.zero?
    check = Pando::CLI::Check.new(load_config(text))
    in_child do
      Process::UID.change_privilege(100_000 + Process.pid)
      check.notes
    end
  end

  def test_a_spool_that_does_not_exist
    expected = "warning: spool (config/pando.rb:2): #{@dir}/none does not exist: request bodies beyond " \
               "`body_memory` get 503, and slow readers' answers take `answer_memory`'s total, then workers. Make a " \
               "directory of it that the server may write to, or name another one with `spool`"

    assert_equal([expected], notes("workers 1\nspool 'none'"))
  end

  def test_a_spool_that_is_a_file
    write("none", "")

    assert_match(%r{\Awarning: spool \(config/pando.rb:1\): #{@dir}/none is no directory: }, notes("spool 'none'").join)
  end

  def test_a_spool_that_cannot_be_written
    File.chmod(0o755, @dir)
    FileUtils.mkdir(File.join(@dir, "ours"), mode: 0o755)

    assert_match(%r{\Awarning: spool \(config/pando.rb:1\): #{@dir}/ours cannot be written: },
                 notes_for_nobody("spool 'ours'").join)
    assert_empty(notes)
  end

  def test_in_direct_mode_there_are_no_answers_to_keep
    assert_match(%r{/none does not exist: request bodies beyond `body_memory` get 503. Make },
                 notes("reactor false\nspool 'none'").join)
  end

  def test_a_swarm_has_no_spool
    assert_empty(notes("workers 0\nspool 'none'\nnode(:own) { exit! }"))
  end
end
