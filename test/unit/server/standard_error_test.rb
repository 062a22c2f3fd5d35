# frozen_string_literal: true

require_relative "../config/config_test_case"
require "pando/server"
require "support/in_child"

class ServerStandardErrorTest < ConfigTestCase
  include Support::InChild

  def test_the_log_has_an_object_of_its_own
    assert_equal([2, false], in_child { [server.stderr.fileno, server.stderr.equal?($stderr)] })
  end

  def test_an_object_that_a_program_has_put_in_its_place_is_kept
    assert(in_child do
      $stderr = StringIO.new
      server.stderr.equal?($stderr)
    end)
  end

  # Ruby leaves the descriptor open.
  def test_a_closed_standard_error_is_written_to_by_its_descriptor
    assert_equal [2, false], (in_child do
      $stderr.close
      [server.stderr.fileno, server.stderr.closed?]
    end)
  end

  private

  def server = Pando::Server.new(load_config)
end
