-- oi_bench.vhd: what the test bench shares: bytes of the standard input as streams, streams as
-- records on the standard output, and random stalls on both sides.
library ieee;
use ieee.std_logic_1164.all;
use ieee.numeric_std.all;
use ieee.math_real.all;

package oi_bench is
  type oi_bytes is file of character;
  type oi_sizes is array (natural range <>) of natural;

  type oi_random is record
    seed1, seed2 : positive;
    stalls       : boolean; -- else no beat ever waits
  end record;

  procedure oi_get(file f : oi_bytes; value : out natural);
  -- Sends a tensor: the elements of `depth` words of `width` bits.
  procedure oi_send(file f : oi_bytes; depth, width : in positive; random : inout oi_random;
                    signal clk : in std_logic; signal tdata : out std_logic_vector;
                    signal tvalid : out std_logic; signal tready : in std_logic);
  -- Receives one and writes it as a record: its kind, name and dims, then the elements.
  procedure oi_receive(file f : oi_bytes; kind : in character; name : in string;
                       dims : in oi_sizes; bytes, depth, width : in positive;
                       random : inout oi_random; signal clk : in std_logic;
                       signal tdata : in std_logic_vector; signal tvalid, tlast : in std_logic;
                       signal tready : out std_logic);
  procedure oi_put_number(file f : oi_bytes; kind : in character; bytes, value : in natural);
end package;

package body oi_bench is

  procedure oi_get(file f : oi_bytes; value : out natural) is
    variable c : character;
  begin
    read(f, c);
    value := character'pos(c);
  end procedure;

  procedure put_integer(file f : oi_bytes; bytes, value : in natural) is
    variable left : natural;
  begin
    left := value;
    for i in 1 to bytes loop
      write(f, character'val(left mod 256));
      left := left / 256;
    end loop;
  end procedure;

  procedure put_head(file f : oi_bytes; kind : in character; name : in string;
                     rank, bytes : in natural) is
  begin
    put_integer(f, 8, character'pos(kind));
    put_integer(f, 8, name'length);
    put_integer(f, 8, rank);
    put_integer(f, 8, bytes);
    for i in name'range loop
      write(f, name(i));
    end loop;
  end procedure;

  procedure oi_put_number(file f : oi_bytes; kind : in character; bytes, value : in natural) is
  begin
    put_head(f, kind, "", 0, bytes);
    put_integer(f, bytes, value);
    flush(f);
  end procedure;

  -- One clock in three waits.
  procedure stall(random : inout oi_random; waits : out boolean) is
    variable r : real;
  begin
    waits := false;
    if random.stalls then
      uniform(random.seed1, random.seed2, r);
      waits := r < 0.33;
    end if;
  end procedure;

  procedure oi_send(file f : oi_bytes; depth, width : in positive; random : inout oi_random;
                    signal clk : in std_logic; signal tdata : out std_logic_vector;
                    signal tvalid : out std_logic; signal tready : in std_logic) is
    variable bits  : unsigned(71 downto 0) := (others => '0');
    variable have  : natural := 0;
    variable byte  : natural;
    variable waits : boolean;
  begin
    for e in 1 to depth loop
      while have < width loop
        oi_get(f, byte);
        bits := bits or shift_left(to_unsigned(byte, 72), have);
        have := have + 8;
      end loop;
      stall(random, waits);
      while waits loop
        wait until rising_edge(clk);
        stall(random, waits);
      end loop;
      tdata  <= std_logic_vector(bits(width - 1 downto 0));
      tvalid <= '1';
      wait until rising_edge(clk) and tready = '1';
      tvalid <= '0';
      bits := shift_right(bits, width);
      have := have - width;
    end loop;
  end procedure;

  procedure oi_receive(file f : oi_bytes; kind : in character; name : in string;
                       dims : in oi_sizes; bytes, depth, width : in positive;
                       random : inout oi_random; signal clk : in std_logic;
                       signal tdata : in std_logic_vector; signal tvalid, tlast : in std_logic;
                       signal tready : out std_logic) is
    variable bits  : unsigned(71 downto 0) := (others => '0');
    variable have  : natural := 0;
    variable waits : boolean;
  begin
    put_head(f, kind, name, dims'length, bytes);
    for twice in 1 to 2 loop -- what there is room for, and what is in use
      for i in dims'range loop
        put_integer(f, 8, dims(i));
      end loop;
    end loop;
    for e in 1 to depth loop
      stall(random, waits);
      while waits loop
        wait until rising_edge(clk);
        stall(random, waits);
      end loop;
      tready <= '1';
      wait until rising_edge(clk) and tvalid = '1';
      assert (tlast = '1') = (e = depth) report name & ": tlast on the wrong beat" severity failure;
      tready <= '0';
      bits := bits or shift_left(resize(unsigned(tdata), 72), have);
      have := have + width;
      while have >= 8 loop
        write(f, character'val(to_integer(bits(7 downto 0))));
        bits := shift_right(bits, 8);
        have := have - 8;
      end loop;
    end loop;
    if have > 0 then
      write(f, character'val(to_integer(bits(7 downto 0))));
    end if;
    tready <= '0';
  end procedure;
end package body;
