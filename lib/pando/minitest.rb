# frozen_string_literal: true

# The suite reforks between its tests (docs/testing.md). To be required before the app is:
#
#   require "minitest/autorun"
#   require "pando/minitest"
require "minitest"
require "pando/testing"
require "pando/testing/minitest_plug"

Pando::Testing::MinitestPlug.install
